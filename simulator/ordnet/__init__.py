"""What ord.net's dialect has beyond the order book: sign-in, scripts, offers and listings paid on the chain."""
