"""Measurements of what Bidkeeper promises to be quick or small at; `make bench` prints one table."""
