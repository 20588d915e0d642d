"""Protected listings, as Ordinals Wallet sells them: out of an escrow of seller and venue."""
