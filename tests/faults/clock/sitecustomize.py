"""A process whose clock is wrong: every look at the time of day is off by FAULT_CLOCK_SECONDS. Read by Python itself.

Clocks that only go forward (`time.monotonic`) are right, as they are on a machine whose time of day is wrong.
"""

import os
import time

OFF = float(os.environ.get("FAULT_CLOCK_SECONDS", "0"))
_time, _time_ns = time.time, time.time_ns

if OFF:
    time.time = lambda: _time() + OFF
    time.time_ns = lambda: _time_ns() + int(OFF * 1_000_000_000)
