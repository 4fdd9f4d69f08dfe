"""What lies behind an address: downloaded whole (`download.py`), or looked into (`wheels.py`)."""
