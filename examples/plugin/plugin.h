// What the host calls in a plugin.
#ifndef EXAMPLES_PLUGIN_PLUGIN_H_
#define EXAMPLES_PLUGIN_PLUGIN_H_

// Writes three events. Returns how the plugin's provider is registered, as a text of the plugin's.
extern "C" [[gnu::visibility("default")]] const char* PluginWork(int round);

#endif  // EXAMPLES_PLUGIN_PLUGIN_H_
