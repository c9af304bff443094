"""CPM-1: a Chinese GPT-2, trained further on documents cut into chunks."""
