// Tests the readable names of Rust functions. Names that are made at random are compared with the
// output of c++filt of GNU binutils.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/trace/rust_name.h"

namespace trace {
namespace {

constexpr std::size_t kMaxSize = 4096;

std::string Readable(std::string_view mangled) {
  return ReadableRustName(mangled, kMaxSize).value_or("-");
}

// Returns the number as names contain it: "_" is 0, "0_" is 1.
std::string Base62(std::size_t value) {
  std::string digits = "_";
  if (value == 0) return digits;
  --value;
  do {
    const auto digit = static_cast<int>(value % 62);
    const int shown = digit < 10 ? '0' + digit : digit < 36 ? 'a' + digit - 10 : 'A' + digit - 36;
    digits.insert(digits.begin(), static_cast<char>(shown));
    value /= 62;
  } while (value != 0);
  return digits;
}

// Returns what c++filt prints for each name.
std::vector<std::string> CxxFilt(const std::vector<std::string>& names) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / absl::StrCat("rust-names-", getpid());
  std::ofstream file(path);
  for (const std::string& name : names) file << name << '\n';
  file.close();
  FILE* const filter =
      popen(absl::StrCat("c++filt --no-verbose <'", path.string(), "'").c_str(), "r");
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), filter)) {
    text.append(buffer.data(), got);
  }
  EXPECT_EQ(pclose(filter), 0);
  std::filesystem::remove(path);
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  EXPECT_EQ(lines.back(), "");
  lines.pop_back();
  return lines;
}

// Makes valid names at random, by the grammar of the scheme.
class NameMaker {
 public:
  explicit NameMaker(unsigned seed) : random_(seed) {}

  std::string Make() {
    name_.clear();
    paths_.clear();
    types_.clear();
    lifetimes_ = 0;
    Path(0);
    if (Below(4) == 0) Path(0);  // the crate of the instance
    return absl::StrCat("_R", name_);
  }

 private:
  // Beyond this depth, only parts without other parts are made.
  static constexpr int kMaxDepth = 5;

  unsigned Below(unsigned end) {
    return std::uniform_int_distribution<unsigned>(0, end - 1)(random_);
  }

  void AddNumber(std::size_t value) { name_ += Base62(value); }
  void Disambiguator() {
    if (Below(3) == 0) {
      name_ += 's';
      AddNumber(Below(5000));
    }
  }
  void Identifier() {
    constexpr std::string_view kNames[] = {"4shop",      "3buy",  "1x",     "3_2ab",       "3__ab",
                                           "u8gdel_5qa", "u3tda", "5Sales", "10Collection"};
    name_ += kNames[Below(9)];
  }
  // Adds a reference to one of `places` in a quarter of the calls. Returns false if it adds none.
  bool Back(const std::vector<std::size_t>& places) {
    if (places.empty() || Below(4) != 0) return false;
    name_ += 'B';
    AddNumber(places[Below(static_cast<unsigned>(places.size()))]);
    return true;
  }

  void Path(int depth) {
    if (Back(paths_)) return;
    const std::size_t start = name_.size();
    switch (depth >= kMaxDepth ? 0 : Below(7)) {
      case 0:
        name_ += 'C';
        Disambiguator();
        Identifier();
        break;
      case 1:
        name_ += 'M';
        Disambiguator();
        Path(depth + 1);
        Type(depth + 1);
        break;
      case 2:
        name_ += 'X';
        Disambiguator();
        Path(depth + 1);
        Type(depth + 1);
        Path(depth + 1);
        break;
      case 3:
        name_ += 'Y';
        Type(depth + 1);
        Path(depth + 1);
        break;
      case 4:
        name_ += 'I';
        Path(depth + 1);
        Arguments(depth);
        break;
      default:
        name_ += absl::StrCat("N", std::string(1, "tvCSXa"[Below(6)]));
        Path(depth + 1);
        Disambiguator();
        Below(5) == 0 ? void(name_ += '0') : Identifier();
    }
    if (lifetimes_ == 0) paths_.push_back(start);
  }

  void Arguments(int depth) {
    for (unsigned i = Below(3); i-- > 0;) {
      switch (Below(4)) {
        case 0:
          name_ += 'L';
          AddNumber(Below(lifetimes_ + 1));
          break;
        case 1:
          name_ += 'K';
          Constant();
          break;
        default:
          Type(depth + 1);
      }
    }
    name_ += 'E';
  }

  void Type(int depth) {
    if (Back(types_)) return;
    const std::size_t start = name_.size();
    switch (depth >= kMaxDepth ? 0 : Below(9)) {
      case 0:
        name_ += "abcdefhijlmnopstuvxyz"[Below(21)];
        break;
      case 1:
        name_ += Below(2) == 0 ? 'R' : 'Q';
        if (Below(2) == 0) {
          name_ += 'L';
          AddNumber(Below(lifetimes_ + 1));
        }
        Type(depth + 1);
        break;
      case 2:
        name_ += Below(2) == 0 ? 'P' : 'O';
        Type(depth + 1);
        break;
      case 3:
        name_ += 'A';
        Type(depth + 1);
        Constant();
        break;
      case 4:
        name_ += 'S';
        Type(depth + 1);
        break;
      case 5:
        name_ += 'T';
        for (unsigned i = Below(4); i-- > 0;) Type(depth + 1);
        name_ += 'E';
        break;
      case 6:
        Function(depth);
        break;
      case 7:
        Dynamic(depth);
        break;
      default:
        Path(depth + 1);
    }
    if (lifetimes_ == 0) types_.push_back(start);
  }

  unsigned Binder() {
    if (Below(2) == 0) return 0;
    const unsigned count = Below(10) == 0 ? 30 : Below(3) + 1;
    name_ += 'G';
    AddNumber(count - 1);
    return count;
  }
  void Function(int depth) {
    name_ += 'F';
    const unsigned outer = lifetimes_;
    lifetimes_ += Binder();
    if (Below(3) == 0) name_ += 'U';
    constexpr std::string_view kAbis[] = {"", "", "KC", "K6system", "K12rust_c_x_abc"};
    name_ += kAbis[Below(5)];
    for (unsigned i = Below(3); i-- > 0;) Type(depth + 1);
    name_ += 'E';
    Type(depth + 1);
    lifetimes_ = outer;
  }
  void Dynamic(int depth) {
    name_ += 'D';
    const unsigned outer = lifetimes_;
    lifetimes_ += Binder();
    for (unsigned i = Below(3); i-- > 0;) {
      Path(depth + 1);
      for (unsigned bound = Below(3); bound-- > 0;) {
        name_ += 'p';
        Identifier();
        Type(depth + 1);
      }
    }
    name_ += 'E';
    lifetimes_ = outer;
    name_ += 'L';
    AddNumber(Below(lifetimes_ + 1));
  }
  // Makes no number of more than 16 digits: c++filt of binutils 2.40 prints other digits for it.
  void Constant() {
    constexpr std::string_view kConstants[] = {"p",      "h7b_", "j0_", "jffffffffffffffff_",
                                               "an80_",  "l7f_", "b0_", "b1_",
                                               "c41_",   "c9_",  "cd_", "ca_",
                                               "c2202_", "c7e_"};
    name_ += kConstants[Below(14)];
  }

  std::mt19937 random_;
  std::string name_;
  // Offsets in `name_` of the complete paths and types to which references may refer. Parts within
  // a binder are excluded, because they may use its lifetimes.
  std::vector<std::size_t> paths_;
  std::vector<std::size_t> types_;
  unsigned lifetimes_ = 0;
};

TEST(RustName, ShowsPaths) {
  EXPECT_EQ(Readable("_RNvC4shop3buy"), "shop::buy");
  EXPECT_EQ(Readable("_RNvNtCs4fqI2P2rA04_4shop4cart3add"), "shop::cart::add");
  EXPECT_EQ(Readable("_RNvMC4shopNtB2_4Sale3buy"), "<shop::Sale>::buy");
  EXPECT_EQ(Readable("_RNvXC4shopNtB2_4SaleNtNtC4core3fmt5Debug3fmt"),
            "<shop::Sale as core::fmt::Debug>::fmt");
  EXPECT_EQ(Readable("_RNvYNtC4shop4SaleNtB4_5Price3sum"), "<shop::Sale as shop::Price>::sum");
  EXPECT_EQ(Readable("_RNCNvC4shop3buy0"), "shop::buy::{closure#0}");
  EXPECT_EQ(Readable("_RNCNvC4shop3buys_0"), "shop::buy::{closure#1}");
  EXPECT_EQ(Readable("_RNSNvC4shop3buy6vtable"), "shop::buy::{shim:vtable#0}");
}

TEST(RustName, ShowsGenericArguments) {
  EXPECT_EQ(Readable("_RINvC4shop3buylReE"), "shop::buy::<i32, &str>");
  EXPECT_EQ(Readable("_RINvC4shop3buyKj10_Kb1_Kc41_KlnffEC5other"),
            "-");  // the last constant has no end
  EXPECT_EQ(Readable("_RINvC4shop3buyKj10_Kb1_Kc41_Klnff_EC5other"),
            "shop::buy::<16, true, 'A', -255>");
  EXPECT_EQ(Readable("_RINvC4shop3buyTlEAhj4_SxOzE"),
            "shop::buy::<(i32,), [u8; 4], [i64], *mut !>");
  EXPECT_EQ(Readable("_RINvC4shop3buyFG_RL0_hEuE"), "shop::buy::<for<'a> fn(&'a u8)>");
  EXPECT_EQ(Readable("_RINvC4shop3buyDNtC1a5Tradep4ItemmEL_E"),
            "shop::buy::<dyn a::Trade<Item = u32>>");
}

TEST(RustName, ShowsOtherCharacters) {
  EXPECT_EQ(Readable("_RNvC4shopu8gdel_5qa"), "shop::gödel");
  EXPECT_EQ(Readable("_RNvC4shopu3tda"), "shop::ü");
  EXPECT_EQ(Readable("_RNvC4shopu3lzg"), "shop::€");
}

TEST(RustName, LeavesOutSuffixes) {
  EXPECT_EQ(Readable("_RNvC4shop3buy.llvm.8823423"), "shop::buy");
  EXPECT_EQ(Readable("_RNvC4shop3buy$tail"), "shop::buy");
}

TEST(RustName, RejectsOtherNames) {
  for (const std::string_view name : {"",
                                      "_R",
                                      "_R0",
                                      "_Rv",
                                      "_RC",
                                      "_RC5shop",
                                      "_RNvC4shop3buyX",
                                      "_RNvC4shop3buy!",
                                      "R",
                                      "__R",
                                      "_ZN4Shop3buyEi",
                                      "_RB_",
                                      "_RNvB_3buy",
                                      "_RNvC4shop99999999999999999999x",
                                      "_R1NvC4shop3buy",
                                      "_RINvC4shop3buyRL0_hE",
                                      "_RINvC4shop3buyKb2_E",
                                      "_RINvC4shop3buyKj_E",
                                      "_RNvC4shopu1_",
                                      "_RNvC4shopu9zzzzzzzzz",
                                      "_RINvC4shop3buyKcfffffffff_E"}) {
    EXPECT_EQ(Readable(name), "-") << name;
  }
}

TEST(RustName, RejectsEveryCutName) {
  const std::string whole = "_RINvNtC4core3mem8align_ofjNtNtC4shop4cart4CartE";
  EXPECT_EQ(Readable(whole), "core::mem::align_of::<usize, shop::cart::Cart>");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(Readable(whole.substr(0, size)), "-") << size;
  }
}

TEST(RustName, BoundsTheReadableForm) {
  EXPECT_EQ(ReadableRustName("_RNvC4shop3buy", 9), "shop::buy");
  EXPECT_EQ(ReadableRustName("_RNvC4shop3buy", 8), std::nullopt);
  EXPECT_EQ(ReadableRustName("_RNvC4shopu8gdel_5qa", 12), "shop::gödel");
  EXPECT_EQ(ReadableRustName("_RNvC4shopu8gdel_5qa", 11), std::nullopt);
}

TEST(RustName, BoundsTheTimeOfHostileNames) {
  // Each tuple consists of the one before it, twice.
  std::string doubles = "INvC1a1bTuuE";
  for (std::size_t start = 8, i = 0; i < 60; ++i) {
    const std::string back = absl::StrCat("B", Base62(start));
    start = doubles.size();
    absl::StrAppend(&doubles, "T", back, back, "E");
  }
  EXPECT_EQ(Readable(absl::StrCat("_R", doubles, "E")), "-");
  EXPECT_EQ(Readable(absl::StrCat("_RINvC1a1b", std::string(1 << 20, 'R'), "uE")), "-");
  EXPECT_EQ(Readable(absl::StrCat("_R", std::string(1 << 20, 'N'))), "-");
  EXPECT_EQ(Readable(absl::StrCat("_RC", std::string(1 << 20, '9'))), "-");
  EXPECT_EQ(Readable(absl::StrCat("_RCs", std::string(1 << 20, '0'), "_1a")), "a");
  EXPECT_EQ(Readable(absl::StrCat("_RINvC1a1bFG", std::string(10, 'Z'), "_EuE")), "-");
  EXPECT_EQ(Readable(absl::StrCat("_RC1048576_", std::string(1 << 20, 'a'))), "-");
}

TEST(RustName, BoundsWhatIsReadAgain) {
  // A number with leading zeros costs much and prints nothing. Each reference reads it again.
  const std::string zeros(40000, '0');
  const auto name = [&zeros](const std::string& references) {
    return absl::StrCat("_RINvC1a1bTNtCs", zeros, "_1x1y", references, "EE");
  };
  EXPECT_EQ(Readable(name("")), "a::b::<(x::y,)>");
  EXPECT_EQ(Readable(name("B8_")), "a::b::<(x::y, x::y)>");
  EXPECT_EQ(Readable(name("B8_B8_")), "-");
}

TEST(RustName, AgreesWithCxxFilt) {
  NameMaker maker(20);
  std::vector<std::string> names;
  for (int i = 0; i < 20000; ++i) {
    std::string name = maker.Make();
    if (name.size() < 400) names.push_back(std::move(name));
  }
  const std::vector<std::string> expected = CxxFilt(names);
  ASSERT_EQ(expected.size(), names.size());
  std::size_t compared = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (expected[i].size() > kMaxSize) continue;
    EXPECT_NE(expected[i], names[i]);
    EXPECT_EQ(Readable(names[i]), expected[i]) << names[i];
    ++compared;
  }
  EXPECT_GT(compared, names.size() * 9 / 10);
}

}  // namespace
}  // namespace trace
