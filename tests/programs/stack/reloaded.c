/* A plugin that is closed and opened again all the time. Nobody calls its functions. */
void reloaded_first(void);
void reloaded_first(void)
{
	__asm__ volatile("nop");
}

void reloaded(void);
void reloaded(void)
{
	__asm__ volatile("nop");
}
