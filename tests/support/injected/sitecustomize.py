"""Found by every Python process that a test starts with this folder on PYTHONPATH; changes it as the test ordered."""

import json
import os

if "RASHOMON_TEST_ORDERS" in os.environ:
    from tests.support.orders import apply

    apply(json.loads(os.environ["RASHOMON_TEST_ORDERS"]))
