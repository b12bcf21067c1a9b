#include "libnettrace-writer/core/sha1.h"

#include <bit>
#include <cstdint>
#include <vector>

namespace nettrace::internal {
namespace {

constexpr std::size_t kBlockSize = 64;
constexpr int kRounds = 80;

using State = std::array<std::uint32_t, 5>;

// Returns the function of this round (RFC 3174, section 5) for words 1 to 3 of the state, plus the
// constant of this round.
std::uint32_t Mix(int round, const State& s) {
  if (round < 20) return ((s[1] & s[2]) | (~s[1] & s[3])) + 0x5A827999;
  if (round < 40) return (s[1] ^ s[2] ^ s[3]) + 0x6ED9EBA1;
  if (round < 60) return ((s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3])) + 0x8F1BBCDC;
  return (s[1] ^ s[2] ^ s[3]) + 0xCA62C1D6;
}

void TakeBlock(std::span<const std::byte> block, State* state) {
  std::array<std::uint32_t, kRounds> words{};
  for (std::size_t i = 0; i < kBlockSize; ++i) {
    words[i / 4] = words[i / 4] << 8 | std::to_integer<std::uint32_t>(block[i]);
  }
  for (std::size_t i = 16; i < words.size(); ++i) {
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  State s = *state;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint32_t next =
        std::rotl(s[0], 5) + Mix(round, s) + s[4] + words[static_cast<std::size_t>(round)];
    s = {next, s[0], std::rotl(s[1], 30), s[2], s[3]};
  }
  for (std::size_t i = 0; i < s.size(); ++i) (*state)[i] += s[i];
}

}  // namespace

std::array<std::byte, 20> Sha1(std::span<const std::byte> message) {
  std::vector<std::byte> padded(message.begin(), message.end());
  padded.push_back(std::byte{0x80});
  while (padded.size() % kBlockSize != kBlockSize - sizeof(std::uint64_t)) padded.emplace_back();
  for (int shift = 56; shift >= 0; shift -= 8) {
    padded.push_back(static_cast<std::byte>(std::uint64_t{8} * message.size() >> shift));
  }
  State state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  for (std::span<const std::byte> rest(padded); !rest.empty(); rest = rest.subspan(kBlockSize)) {
    TakeBlock(rest.first(kBlockSize), &state);
  }
  std::array<std::byte, 20> hash;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    hash[i] = static_cast<std::byte>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return hash;
}

}  // namespace nettrace::internal
