"""A practice marketplace: the real venues' dialects over one order-book engine, with play money and faults."""
