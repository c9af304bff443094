"""The one training loop: what every case shares, whatever its model and framework.

The modules here import no framework: arguments, configuration, clock, events, schedules, sample order
and the loop itself. `driver/<framework>/` holds the engine that does the work in that framework.
A case (`benchmarks/<model>/<framework>/case.py`) brings the model, its data, its loss and its metric.
"""

if __name__ == "driver":  # a script that put benchmarks/ on sys.path wants an earlier one
    raise ImportError(
        f"{__file__} is not the package `driver` that this case was written for: "
        "copy that one into the case's folder, beside run_pretraining.py"
    )
