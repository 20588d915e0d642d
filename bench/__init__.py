"""Measurements of Bidkeeper's promised speed and size; `make bench` prints one table."""
