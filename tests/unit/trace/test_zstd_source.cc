#include <gtest/gtest.h>
#include <zstd.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "tests/support/nettrace/read_all.h"
#include "tools/trace/zstd_source.h"

namespace trace {
namespace {

using nettrace::testing::AllBytes;
using nettrace::testing::PiecesSource;

std::string Frame(std::string_view text, int level = 1) {
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), level));
  return frame;
}

// Returns a frame that readers skip.
std::string Skippable(std::string_view content) {
  const std::size_t size = content.size();
  std::string frame = "\x5f\x2a\x4d\x18";
  for (int shift = 0; shift < 32; shift += 8) frame += static_cast<char>(size >> shift);
  return frame + std::string(content);
}

AllBytes Read(std::string_view bytes, std::size_t in_pieces = 1 << 20,
              std::size_t out_pieces = 1 << 16) {
  auto source = OpenCompressed(std::make_unique<PiecesSource>(bytes, in_pieces));
  if (!source.ok()) return {"", source.status()};
  return nettrace::testing::ReadAll(source->get(), out_pieces);
}

std::string RandomText(std::size_t size) {
  std::mt19937 random(3);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>('a' + random() % 16);
  return text;
}

TEST(ZstdSourceTest, OtherBytesAreUnchanged) {
  const std::string lookalike = Frame("x").substr(1);
  for (const std::string& text : {std::string(), std::string("N"), std::string("Nettrace..."),
                                  std::string("\x28\xb5\x2f"), lookalike}) {
    for (const std::size_t piece : {1u, 3u, 100u}) {
      const AllBytes read = Read(text, piece, piece);
      EXPECT_EQ(read.bytes, text);
      EXPECT_TRUE(read.status.ok());
    }
  }
}

TEST(ZstdSourceTest, FramesComeOneAfterTheOther) {
  const std::string text = RandomText(300'000);
  const std::string bytes =
      Skippable("as pzstd does") + Frame(text) + Frame("") + Skippable("") + Frame("end", 19);
  for (const std::size_t in : {1u, 1000u, 1u << 20}) {
    for (const std::size_t out : {1u, 1000u, 1u << 20}) {
      if (in + out == 2) continue;  // slow, and no additional case
      const AllBytes read = Read(bytes, in, out);
      EXPECT_TRUE(read.status.ok()) << read.status;
      EXPECT_TRUE(read.bytes == text + "end") << in << " " << out;
    }
  }
}

TEST(ZstdSourceTest, CutDataIsDataLossAfterTheIntactPart) {
  const std::string first = RandomText(1000);
  const std::string second = RandomText(2000);
  const std::string whole = Frame(first);
  const std::string bytes = whole + Frame(second);
  for (std::size_t size = 4; size < bytes.size(); ++size) {
    const AllBytes read = Read(std::string_view(bytes).substr(0, size));
    EXPECT_TRUE((first + second).starts_with(read.bytes)) << size;
    if (size >= whole.size()) {
      EXPECT_GE(read.bytes.size(), first.size()) << size;
    }
    EXPECT_EQ(absl::IsDataLoss(read.status), size != whole.size()) << size << read.status;
  }
}

TEST(ZstdSourceTest, DamagedDataIsDataLoss) {
  const std::string text = RandomText(1000);
  const AllBytes read = Read(Frame(text) + "no frame");
  EXPECT_EQ(read.bytes, text);
  EXPECT_TRUE(absl::IsDataLoss(read.status)) << read.status;

  std::string checked(2000, '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  checked.resize(ZSTD_compress2(context, checked.data(), checked.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  EXPECT_TRUE(Read(checked).status.ok());
  checked.back() ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(Read(checked).status));
}

// Returns a frame whose header requests a window of 2^`log` bytes, and that has one block, "x".
std::string FrameOfWindow(int log) {
  return std::string("\x28\xb5\x2f\xfd\0", 5) + static_cast<char>((log - 10) << 3) +
         std::string("\x09\0\0x", 4);
}

TEST(ZstdSourceTest, LimitsMemoryLikeTheZstdProgram) {
  EXPECT_EQ(Read(FrameOfWindow(10)).bytes, "x");
  EXPECT_EQ(Read(FrameOfWindow(27)).bytes, "x");
  for (const int log : {28, 31, 41}) {
    const AllBytes read = Read(FrameOfWindow(log));
    EXPECT_TRUE(absl::IsResourceExhausted(read.status)) << log << read.status;
  }
}

TEST(ZstdSourceTest, ErrorOfTheSourceIsReturned) {
  class Failing : public nettrace::Source {
    absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
      if (given_) return absl::UnavailableError("failing");
      given_ = true;
      const std::string start = Frame(RandomText(1000)).substr(0, 500);
      std::copy_n(std::as_bytes(std::span(start)).begin(), 4, buffer.begin());
      return 4;
    }
    bool given_ = false;
  };
  auto source = OpenCompressed(std::make_unique<Failing>());
  ASSERT_TRUE(source.ok());
  EXPECT_TRUE(absl::IsUnavailable(nettrace::testing::ReadAll(source->get()).status));
}

}  // namespace
}  // namespace trace
