"""Programs for those who work on Bidkeeper; the service needs none of them."""
