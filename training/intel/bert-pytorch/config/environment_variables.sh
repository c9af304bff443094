# Each stack of a card is a device: the driver's default for the Max series, on which vendor.py counts.
export ZE_FLAT_DEVICE_HIERARCHY=FLAT
