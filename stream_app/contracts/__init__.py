"""The wire contract: typed events in (``events``) and out (``scores``), and their schemas."""
