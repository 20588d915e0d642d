"""A practice marketplace: the real venues' APIs over one order-book engine, with play money and faults."""
