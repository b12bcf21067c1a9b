// Whose events were lost: the kernel's counts by tracepoint, read where the rings say that samples
// are missing.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tools/collector/session/loss_ledger.h"

namespace collector {
namespace {

// A kernel: what it has counted by CPU and tracepoint, and how often it was asked.
class LossLedgerTest : public ::testing::Test {
 protected:
  absl::Status Read(std::size_t cpu, absl::FunctionRef<void(int, std::uint64_t)> total) {
    ++reads_[cpu];
    if (!counts_) return absl::UnimplementedError("before 6.0");
    for (const auto& [id, lost] : kernel_[cpu]) total(id, lost);
    return absl::OkStatus();
  }
  std::vector<Loss> Settle(bool all = false) {
    std::vector<Loss> losses;
    const absl::Status status = ledger_.Settle(
        kCpus, all,
        [this](std::size_t cpu, absl::FunctionRef<void(int, std::uint64_t)> total) {
          return Read(cpu, total);
        },
        [this] { return now_ += 10; }, &losses);
    EXPECT_TRUE(status.ok()) << status;
    return losses;
  }

  static constexpr std::size_t kCpus = 3;
  bool counts_ = true;
  std::map<std::size_t, std::map<int, std::uint64_t>> kernel_;
  std::map<std::size_t, int> reads_;
  std::uint64_t now_ = 1000;
  LossLedger ledger_{1000};
};

TEST_F(LossLedgerTest, NothingIsReadWhileNothingIsLost) {
  EXPECT_FALSE(ledger_.is_due());
  EXPECT_TRUE(Settle().empty());
  EXPECT_TRUE(reads_.empty());
}

TEST_F(LossLedgerTest, OnlyTheCpuThatLostSomethingIsRead) {
  kernel_[1] = {{7, 3}, {8, 0}, {9, 2}};
  kernel_[2] = {{7, 1}};
  ledger_.Report(1, 5, 1004);
  EXPECT_TRUE(ledger_.is_due());
  const std::vector<Loss> losses = Settle();
  EXPECT_EQ(losses, (std::vector<Loss>{{1, 7, 3, 1004, 1020}, {1, 9, 2, 1004, 1020}}));
  EXPECT_EQ(reads_, (std::map<std::size_t, int>{{1, 1}}));
  EXPECT_FALSE(ledger_.is_due());
}

TEST_F(LossLedgerTest, WhatWasToldOnceIsNotToldAgain) {
  kernel_[0] = {{7, 3}};
  ledger_.Report(0, 2, 1001);  // the third is not in the ring's records yet
  EXPECT_EQ(Settle(), (std::vector<Loss>{{0, 7, 3, 1001, 1020}}));
  ledger_.Report(0, 1, 1005);
  EXPECT_TRUE(Settle().empty());
  kernel_[0] = {{7, 10}};
  ledger_.Report(0, 7, 1002);
  // Not before the counts were read the last time, which was begun at 1030.
  EXPECT_EQ(Settle(), (std::vector<Loss>{{0, 7, 7, 1030, 1060}}));
}

TEST_F(LossLedgerTest, AtTheEndAllAreRead) {
  kernel_[0] = {{7, 1}};
  kernel_[2] = {{7, 4}};
  ledger_.Report(0, 1, 1001);
  EXPECT_EQ(Settle(/*all=*/true),
            (std::vector<Loss>{{0, 7, 1, 1001, 1020}, {2, 7, 4, 1000, 1060}}));
}

TEST_F(LossLedgerTest, KernelsThatDoNotCountSayItByRingOnly) {
  counts_ = false;
  ledger_.Report(1, 5, 1001);
  ledger_.Report(1, 2, 1003);
  EXPECT_EQ(Settle(), (std::vector<Loss>{{1, std::nullopt, 7, 1001, 1020}}));
  EXPECT_TRUE(Settle(/*all=*/true).empty());
}

TEST_F(LossLedgerTest, AnErrorOfTheKernelIsReturned) {
  ledger_.Report(0, 1, 0);
  std::vector<Loss> losses;
  EXPECT_EQ(ledger_.Settle(
                kCpus, false, [](auto, auto) { return absl::InternalError("read"); },
                [] { return std::uint64_t{1}; }, &losses),
            absl::InternalError("read"));
}

}  // namespace
}  // namespace collector
