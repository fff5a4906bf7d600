"""Everything fetched over HTTP: bounded requests, listings of the Hub, and files that are verified before they are in place."""
