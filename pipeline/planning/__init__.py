"""What a VLM service is started with: models, cards, memory, and the plan that server and client share."""
