// The function of a plugin that the host calls.
#ifndef EXAMPLES_PLUGIN_PLUGIN_H_
#define EXAMPLES_PLUGIN_PLUGIN_H_

// Writes three events. Returns text, stored in the plugin, that describes the registration of its
// provider.
extern "C" [[gnu::visibility("default")]] const char* PluginWork(int round);

#endif  // EXAMPLES_PLUGIN_PLUGIN_H_
