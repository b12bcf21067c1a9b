// Tests the thread of a capture with a real capture.
#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "tools/nettraced/capture_thread.h"

namespace nettraced {
namespace {

TEST(CaptureThreadTest, DestroysWorkBeforeTheNextWork) {
  std::promise<void> is_posted;
  std::promise<void> done;
  bool was_done = false;
  bool was_destroyed = false;
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> watched = held;
  // Joins the thread before the variables above are destroyed.
  const auto capture = CaptureThread::Start({});
  if (!capture.ok()) GTEST_SKIP() << capture.status().message();
  // The first function waits until all functions are posted. The thread therefore takes the second
  // and the third one from its queue together.
  (*capture)->Post([wait = is_posted.get_future().share()](collector::Capture&) { wait.wait(); });
  (*capture)->Post([held, &was_done](collector::Capture&) { was_done = true; });
  held.reset();
  (*capture)->Post([&](collector::Capture&) {
    was_destroyed = watched.expired();
    done.set_value();
  });
  is_posted.set_value();
  done.get_future().wait();
  EXPECT_TRUE(was_done);
  EXPECT_TRUE(was_destroyed);
}

}  // namespace
}  // namespace nettraced
