// The functions of a plugin that the host calls.
#ifndef EXAMPLES_PLUGIN_PLUGIN_H_
#define EXAMPLES_PLUGIN_PLUGIN_H_

// Writes three events. Returns a text in the plugin that says how its provider is registered.
extern "C" [[gnu::visibility("default")]] const char* PluginWork(int round);

#endif  // EXAMPLES_PLUGIN_PLUGIN_H_
