"""FAKES: what stands in tests for what this machine does not have, each at the boundary that it names.

    clock            the machine's clock
    runtime          what units run in (run_benchmarks.runtimes.base.Runtime)
    transports       a host's answers (run_benchmarks.transports.base.Transport)
    container_engine the engine's command line, with a store for each host
    python3          pip, as the install scripts of images call it
    nvml             NVIDIA's library pynvml
    dcmi             Huawei's library libdcmi.so
    training_engines the frameworks (benchmarks.driver.engine)
    paddle           Paddle's store, its GPU kernel and a GPU

Everything else in tests is real; a stand-in that a single test makes for itself stays beside that test.
"""
