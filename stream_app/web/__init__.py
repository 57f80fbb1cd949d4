"""The console and the API: FastAPI over the store; live events come from the topics."""
