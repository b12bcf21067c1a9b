// Tests one header in a program and in two shared objects at the same time. The arguments are the
// shared objects.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>

#include "object.h"
#include "tests/support/eventheader/kernel_trace.h"

extern "C" const Object* program_object();

namespace eh::testing {
namespace {

std::string first_path, second_path;

struct Close {
  void operator()(void* handle) const { EXPECT_EQ(dlclose(handle), 0); }
};
using Loaded = std::unique_ptr<void, Close>;

Loaded Load(const std::string& path, int flags) {
  Loaded loaded(dlopen(path.c_str(), RTLD_NOW | flags));
  EXPECT_NE(loaded, nullptr) << dlerror();
  return loaded;
}

const Object* ObjectOf(const Loaded& loaded) {
  return reinterpret_cast<const Object* (*)()>(dlsym(loaded.get(), "shared_object"))();
}

class SharedObjects : public KernelTest {
 protected:
  // Expects that every way of writing writes the event exactly once, to the right tracepoint.
  void ExpectAllArrive(const Object* object, const std::string& from, int ways = kWays - 1) {
    EXPECT_EQ(object->status(), 0) << from;
    for (int way = 0; way < ways; ++way) {
      const std::string text = from + ", way " + std::to_string(way);
      EXPECT_EQ(object->write(way, text.c_str()), 0) << text;
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(CountText(traces_[i].Take(), text), 1 << i == kKeywords[way] ? 1 : 0)
            << text << ", keyword " << (1 << i);
      }
    }
  }

  // Registers the tracepoints before the shared objects do, so that the test can enable them.
  Definition definitions_[3] = {Definition("Vm_Instrumented_L4K1"),
                                Definition("Vm_Instrumented_L4K2"),
                                Definition("Vm_Instrumented_L4K4")};
  TraceInstance traces_[3] = {TraceInstance("one"), TraceInstance("two"), TraceInstance("four")};

  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    traces_[0].Enable("Vm_Instrumented_L4K1");
    traces_[1].Enable("Vm_Instrumented_L4K2");
    traces_[2].Enable("Vm_Instrumented_L4K4");
  }
};

TEST_F(SharedObjects, AllMayWriteToASetThatOneHasRegistered) {
  const Loaded second = Load(second_path, RTLD_LOCAL);
  ExpectAllArrive(ObjectOf(second), "second", kWays);
  const Loaded first = Load(first_path, RTLD_LOCAL);
  ExpectAllArrive(ObjectOf(first), "first", kWays);
  ExpectAllArrive(program_object(), "program", kWays);
}

// The parameter is the flags of dlopen.
class LoadedAs : public SharedObjects, public ::testing::WithParamInterface<int> {};

TEST_P(LoadedAs, EachWritesItsEventsUntilUnloaded) {
  const Object* const program = program_object();
  Loaded first = Load(first_path, GetParam());
  Loaded second = Load(second_path, GetParam());
  ExpectAllArrive(ObjectOf(second), "second");
  ExpectAllArrive(program, "program");
  ExpectAllArrive(ObjectOf(first), "first");
  ExpectAllArrive(program, "program again");
  first.reset();
  ExpectAllArrive(ObjectOf(second), "second, without first");
  ExpectAllArrive(program, "program, without first");
  first = Load(first_path, GetParam());
  ExpectAllArrive(ObjectOf(first), "first, again");
  second.reset();
  ExpectAllArrive(ObjectOf(first), "first, without second");
  ExpectAllArrive(program, "program, without second");
  first.reset();
  ExpectAllArrive(program, "program alone");
}

TEST_P(LoadedAs, EachContinuesAfterAllDescriptorsWereClosed) {
  const Loaded first = Load(first_path, GetParam());
  const Loaded second = Load(second_path, GetParam());
  const Object* const objects[] = {program_object(), ObjectOf(first), ObjectOf(second)};
  for (const Object* object : objects) ExpectAllArrive(object, "before");
  for (const int order : {0, 1, 2}) {
    SCOPED_TRACE(order);
    // Closes only the library's descriptors, which it places above the soft limit.
    for (const int fd : UserEventsDescriptors()) {
      if (fd >= getdtablesize()) close(fd);
    }
    usleep(10'000);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(objects[(order + i) % 3]->retry(), 0);
    for (const Object* object : objects) ExpectAllArrive(object, "after all");
  }
}

INSTANTIATE_TEST_SUITE_P(Local, LoadedAs, ::testing::Values(RTLD_LOCAL));
INSTANTIATE_TEST_SUITE_P(Global, LoadedAs, ::testing::Values(RTLD_GLOBAL));

}  // namespace
}  // namespace eh::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 3) return 2;
  eh::testing::first_path = argv[1];
  eh::testing::second_path = argv[2];
  return RUN_ALL_TESTS();
}
