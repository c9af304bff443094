"""The conformance kit: what can be proven of a vendor's folder, with its chips and without them.

`records` holds what it says, `kit` the parts, each a module with a function `checks(vendor, options)`.
"""
