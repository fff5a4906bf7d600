"""Found by every Python process that a test starts with this folder on PYTHONPATH; changes it as the test ordered."""

import json
import os

if "RASHOMON_TEST_ORDERS" in os.environ:
    orders = json.loads(os.environ["RASHOMON_TEST_ORDERS"])
    if prompts := orders.pop("cached_prompts", None):
        from tests.support.cached_prompts import bound_caches

        bound_caches(prompts)
    if orders:  # which take a quarter of a second to import
        from tests.support.orders import apply

        apply(orders)
