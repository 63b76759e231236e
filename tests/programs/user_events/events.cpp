#include "events.c"
