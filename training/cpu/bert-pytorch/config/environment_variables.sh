# Read by the ranks' shell before they start.

. "${BASH_SOURCE[0]%/*}/../../keep_memory.sh"
