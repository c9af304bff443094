"""What is shown of runs as HTML: the page that all of it is built on, its charts, and the report of a run."""
