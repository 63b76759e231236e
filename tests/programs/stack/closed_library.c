/* A library that is closed again. With LARGE the same places of its code have larger frames. */
#ifdef LARGE
#define SIZE 1000
#else
#define SIZE 200
#endif

__attribute__((noinline)) static int inner(void (*function)(const char *), int number)
{
	volatile char memory[SIZE];
	memory[0] = (char)number;
	function("closed library");
	return memory[0];
}

int call_back(void (*function)(const char *));
int call_back(void (*function)(const char *))
{
	volatile char memory[2 * SIZE];
	memory[0] = 1;
	return inner(function, 3) + memory[0];
}
