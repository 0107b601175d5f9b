"""For processes of tests that search: `torch.compile` and pauses for a quiet machine cost nothing.

Inductor takes ten seconds a problem, and beside other tests the machine is never quiet.
"""

import os
import time

os.environ["TORCHDYNAMO_DISABLE"] = "1"
_sleep = time.sleep
time.sleep = lambda seconds: _sleep(min(seconds, 0.1))
