// Loads and unloads a plugin repeatedly while threads of the program write.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "eventheader/eh.h"
#include "tests/support/eventheader/kernel_trace.h"

namespace eh::testing {
namespace {

constexpr int kRounds = 100;
constexpr int kWriters = 8;
constexpr int kPluginThreads = 2;
constexpr int kPluginEvents = 25;  // events of each thread of the plugin

constinit Provider provider("Vm_Program");
constexpr Event<provider, "Busy", Traits{.keyword = 1}, Field<"number", std::uint64_t>> busy;

class Plugin {
 public:
  Plugin() : handle_(dlopen(kPath, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  ~Plugin() {
    EXPECT_EQ(dlclose(handle_), 0);
    EXPECT_EQ(dlopen(kPath, RTLD_NOW | RTLD_NOLOAD), nullptr) << "the plugin is still loaded";
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  int Status() const { return reinterpret_cast<int (*)()>(dlsym(handle_, "plugin_status"))(); }
  // Starts threads that write events by a function of the plugin. Returns the number of events
  // written, after the threads have ended.
  std::uint64_t Work() const {
    auto* const work = reinterpret_cast<int (*)(int)>(dlsym(handle_, "plugin_work"));
    std::atomic<std::uint64_t> written = 0;
    std::vector<std::thread> threads;
    threads.reserve(kPluginThreads);
    for (int i = 0; i < kPluginThreads; ++i) {
      threads.emplace_back([&] { written += static_cast<std::uint64_t>(work(kPluginEvents)); });
    }
    for (std::thread& thread : threads) thread.join();
    return written;
  }

 private:
  static constexpr char kPath[] = PLUGIN;
  void* handle_;
};

class PluginTest : public KernelTest {};

TEST_F(PluginTest, LoadsAndUnloadsWhileThreadsWrite) {
  ASSERT_EQ(provider.status(), 0) << RegistrationErrorText(provider.status());
  // Defines the tracepoints, so that they stay enabled while the plugin is not loaded.
  auto work = std::make_unique<Definition>("Vm_Plugin_L4K1");
  auto toggled = std::make_unique<Definition>("Vm_Plugin_L4K2");
  TraceInstance program_trace("program");
  TraceInstance plugin_trace("plugin");
  TraceInstance toggled_trace("toggled");
  program_trace.Enable("Vm_Program_L4K1");
  plugin_trace.Enable("Vm_Plugin_L4K1");

  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> written = 0;
  std::vector<std::thread> threads;
  threads.reserve(kWriters + 1);
  for (int i = 0; i < kWriters; ++i) {
    threads.emplace_back([&] {
      std::uint64_t number = 0;
      for (; !stop; ++number) {
        EXPECT_EQ(busy.Write(number), WriteResult::kWritten);
        if (number % 64 == 0) usleep(1'000);  // Leaves time for other threads.
      }
      written += number;
    });
  }
  // Enables and disables the plugin's tracepoint, so that the kernel may write to the plugin's
  // enable word at any moment, also while the plugin is unloaded.
  threads.emplace_back([&] {
    for (bool on = true; !stop; on = !on) {
      toggled_trace.Enable("Vm_Plugin_L4K2", on);
      usleep(50'000);
    }
  });

  std::uint64_t of_plugin = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Plugin plugin;
    EXPECT_EQ(plugin.Status(), 0);
    of_plugin += plugin.Work();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(of_plugin, std::uint64_t{kRounds} * kPluginThreads * kPluginEvents);
  EXPECT_EQ(plugin_trace.Count(), of_plugin);
  EXPECT_EQ(program_trace.Count(), written);
  EXPECT_EQ(provider.counters().written, written);
  EXPECT_EQ(provider.counters().failed, 0u);
  RecordProperty("program_events", static_cast<int>(written));

  // The plugin must leave neither a descriptor nor a tracepoint.
  EXPECT_EQ(UserEventsDescriptors().size(), 3u);  // the program's, and those of the two definitions
  plugin_trace.Enable("Vm_Plugin_L4K1", false);
  toggled_trace.Enable("Vm_Plugin_L4K2", false);
  work.reset();
  toggled.reset();
  EXPECT_TRUE(IsGone("Vm_Plugin_L4K1"));
  EXPECT_TRUE(IsGone("Vm_Plugin_L4K2"));
}

}  // namespace
}  // namespace eh::testing
