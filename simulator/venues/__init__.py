"""The marketplaces and data APIs that the practice market answers, each written from its vendor's documentation."""
