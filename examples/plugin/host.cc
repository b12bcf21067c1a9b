// Loads a plugin that writes events, calls it and unloads it, several times.
//   nettrace record -o plugin.nettrace -e ExamplePlugin_L4K1
//       -- example-plugin-host --rounds 3 ./example-plugin.so
//   nettrace dump plugin.nettrace
// The host itself does not use libeventheader.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "plugin.h"

namespace {

// Waits for Enter if `step` is true.
void Pause(bool step) {
  if (!step) return;
  std::fflush(stdout);
  for (int c = std::getchar(); c != '\n' && c != EOF; c = std::getchar()) {
  }
}

bool Fail(const char* what) {
  std::fprintf(stderr, "example-plugin-host: %s\n", what);
  return false;
}

bool Round(int round, const char* file, bool step) {
  void* const plugin = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return Fail(dlerror());
  auto* const work = reinterpret_cast<decltype(&PluginWork)>(dlsym(plugin, "PluginWork"));
  if (work == nullptr) return Fail(dlerror());
  std::printf("round %d: loaded; %s\n", round, work(round));
  Pause(step);

  if (dlclose(plugin) != 0) return Fail(dlerror());
  if (dlopen(file, RTLD_NOW | RTLD_NOLOAD) != nullptr)
    return Fail("the plugin is still loaded after dlclose(); build it as plugin.cc describes");
  std::printf("round %d: unloaded\n", round);
  Pause(step);
  return true;
}

int Usage(std::FILE* to, int exit_code) {
  std::fputs(
      "usage: example-plugin-host [--rounds N] [--step] PLUGIN.so\n\n"
      "Loads PLUGIN.so, calls it and unloads it, N times (3).\n\n"
      "  --step   waits for Enter after each load and unload, so that `eventheader list` can\n"
      "           show that the plugin's tracepoint, ExamplePlugin_L4K1, appears and disappears\n\n"
      "example:\n"
      "  example-plugin-host --rounds 5 ./example-plugin.so\n\n"
      "exit status: 0 done, 1 the plugin cannot be loaded or unloaded, 2 wrong usage\n",
      to);
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 3;
  bool step = false;
  const char* file = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) return Usage(stdout, 0);
    if (std::strcmp(argv[i], "--step") == 0) {
      step = true;
    } else if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
      rounds = std::atoi(argv[++i]);
    } else if (argv[i][0] != '-' && file == nullptr) {
      file = argv[i];
    } else {
      return Usage(stderr, 2);
    }
  }
  if (file == nullptr || rounds < 1) return Usage(stderr, 2);
  for (int round = 0; round < rounds; ++round) {
    if (!Round(round, file, step)) return 1;
  }
  return 0;
}
