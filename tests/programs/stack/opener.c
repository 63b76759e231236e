/* A library that a program needs. Its constructor opens the plugin $PLUGIN, as that of a plugin loader does. */
#include <dlfcn.h>
#include <stdlib.h>

void *plugin;
void reload(void);

__attribute__((constructor)) static void open_plugin(void)
{
	plugin = dlopen(getenv("PLUGIN"), RTLD_NOW);
}

void reload(void)
{
	dlclose(plugin);
	open_plugin();
}
