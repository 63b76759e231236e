/* Has a shell run its argument, and does nothing else. */
#include <stdlib.h>

int main(int count, char **words) { return count == 2 && system(words[1]) == 0 ? 7 : 1; }
