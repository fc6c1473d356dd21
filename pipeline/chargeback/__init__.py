"""Chargeback: prices, and what pages cost the teams that sent them."""
