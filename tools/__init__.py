"""Programs for Bidkeeper's developers; the service needs none of them."""
