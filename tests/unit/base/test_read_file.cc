#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tools/base/read_file.h"
#include "tools/base/unique_fd.h"

namespace base {
namespace {

class ReadFileTest : public ::testing::Test {
 protected:
  ReadFileTest() : fd_(mkstemp(path_.data())) {}
  ~ReadFileTest() override { unlink(path_.c_str()); }

  void Put(const std::string& text) {
    ASSERT_EQ(write(fd_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  std::string path_ = ::testing::TempDir() + "/read_file.XXXXXX";
  const UniqueFd fd_;
};

TEST_F(ReadFileTest, ReturnsTheWholeFile) {
  EXPECT_EQ(*ReadFile(path_, 100), "");
  std::string text = std::string("a\0b\n", 4);
  Put(text);
  EXPECT_EQ(*ReadFile(path_, 100), text);
  EXPECT_EQ(*ReadFile(path_, text.size()), text);
  text += std::string(1'000'000, 'x');
  Put(text.substr(4));
  EXPECT_EQ(*ReadFile(path_, 2'000'000), text);
}

TEST_F(ReadFileTest, StopsAtTheBound) {
  Put(std::string(50'000, 'x'));
  EXPECT_EQ(*ReadFile(path_, 49'999), std::string(49'999, 'x'));
  EXPECT_EQ(*ReadFile(path_, 0), "");
}

TEST_F(ReadFileTest, ReadsAnOpenFileFromItsPosition) {
  Put("before after");
  ASSERT_EQ(lseek(fd_.get(), 7, SEEK_SET), 7);
  EXPECT_EQ(*ReadOpenFile(fd_.get(), 100, path_), "after");
}

TEST_F(ReadFileTest, ReadsAPipeUntilItsEnd) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  ASSERT_EQ(write(write_end.get(), "text", 4), 4);
  write_end.reset();
  EXPECT_EQ(*ReadOpenFile(read_end.get(), 100, "pipe"), "text");
}

TEST_F(ReadFileTest, ErrorsNameTheFile) {
  EXPECT_EQ(ReadFile("/nonexistent/file", 1).status(),
            absl::NotFoundError("/nonexistent/file: No such file or directory"));
  EXPECT_EQ(ReadFile("/", 1).status().message(), "/: Is a directory");
  EXPECT_EQ(ReadOpenFile(-1, 1, "cannot be read").status().message(),
            "cannot be read: Bad file descriptor");
}

}  // namespace
}  // namespace base
