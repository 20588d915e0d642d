"""The parts of ord.net's dialect beyond the order book: sign-in, scripts, offers and listings paid on the chain."""
