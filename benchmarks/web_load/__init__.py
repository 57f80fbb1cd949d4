"""Load of the console: visitors, live streams, and turns that are written meanwhile."""
