//===- FaultTest.cpp - what becomes of a plan that the checker refuses ----===//
#include "compiler/driver/Fault.h"

#include "compiler/driver/Diagnostics.h"
#include "core/AtomicFile.h"
#include "core/Error.h"
#include "core/Files.h"
#include "runtime/plan/format/PlanReader.h"
#include "tools/ds-opt/ProvenCompile.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>

namespace ds::driver {
namespace {

namespace fs = std::filesystem;

bool leavesOut(const CompileRequest &request, const char *pass) {
  return std::ranges::find(request.without, pass) != request.without.end();
}

bool sets(const CompileRequest &request, const char *key) {
  return std::ranges::find(request.overrides.sets, key) != request.overrides.sets.end();
}

/// Compiles what `isRight` says and makes a wrong plan of the rest.
ProvenCompile compiler(bool (*isRight)(const CompileRequest &)) {
  return [isRight](const CompileRequest &request) {
    if (!isRight(request))
      throw CompilerFault("race", "the plan is wrong", std::make_shared<const plan::proto::Plan>());
    return CompileResult{};
  };
}

TEST(Fault, NamesThePassesWithoutWhichItCompiles) {
  EXPECT_EQ(findWayRound({}, compiler([](const CompileRequest &r) { return leavesOut(r, "ds-fuse-bias"); })),
            "--without ds-fuse-bias");
  EXPECT_EQ(findWayRound({}, compiler([](const CompileRequest &r) {
                           return leavesOut(r, "ds-fuse-bias") && leavesOut(r, "ds-read-ahead");
                         })),
            "--without ds-fuse-bias --without ds-read-ahead");
}

TEST(Fault, NamesAKeyWhereNoPassHelps) {
  EXPECT_EQ(findWayRound({}, compiler([](const CompileRequest &r) { return sets(r, "zero_optimization.stage=1"); })),
            "--set zero_optimization.stage=1");
}

TEST(Fault, AKeyThatIsRefusedHelpsNobody) {
  EXPECT_EQ(findWayRound({},
                         [](const CompileRequest &request) {
                           if (request.overrides.sets.empty())
                             throw CompilerFault("race", "the plan is wrong");
                           throw Error("the key does not go with another");
                           return CompileResult{};
                         }),
            "");
}

TEST(Fault, APlanThatBreaksARuleIsOneALimitIsNot) {
  plan::proto::Plan plan;
  plan.mutable_machine()->set_device("none");
  EXPECT_THROW(tool::requireProven(plan), CompilerFault);
  plan.mutable_machine()->set_name(std::string(5000, 'n'));
  EXPECT_THROW(tool::requireProven(plan), plan::TooLarge);
}

/// A folder of its own, with a configuration, and what compileProven says there.
class FaultReport : public ::testing::Test {
protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / "fault-report";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    request_.model.path = "somewhere/model-x.onnx";
    request_.output = (folder_ / "p.dsplan").string();
    request_.configPath = (folder_ / "c.json").string();
    writeFileAtomically(request_.configPath, "{\"a_key\": 7}");
  }

  CompilerFault fault() {
    try {
      compileProven(request_, "ds-opt compile --flag",
                    compiler([](const CompileRequest &request) { return leavesOut(request, "ds-fuse-bias"); }));
    } catch (const CompilerFault &fault) {
      return fault;
    }
    return {"", "no fault"};
  }

  fs::path folder_;
  CompileRequest request_;
};

TEST_F(FaultReport, SaysWhoseFaultItIs) {
  const CompilerFault said = fault();
  EXPECT_EQ(said.what(), "the plan is wrong; this is a fault of the compiler, not of your model or configuration, and "
                         "no plan was written; it compiles with --without ds-fuse-bias; please send " +
                             request_.output + ".fault.txt, which holds what is needed to find it");
  EXPECT_EQ(said.tryLine, "--without ds-fuse-bias");
  EXPECT_FALSE(isThere(request_.output));
}

TEST_F(FaultReport, HoldsWhatIsNeeded) {
  fault();
  const std::string report = readWhole(request_.output + ".fault.txt").value();
  for (const char *part : {"version: ", "model: model-x.onnx\n", "command: ds-opt compile --flag\n", "rule: race\n",
                           "sentence: the plan is wrong\n", "{\"a_key\": 7}", "\nplan:\n"})
    EXPECT_NE(report.find(part), std::string::npos) << part << " in " << report;
  EXPECT_EQ(report.find("somewhere"), std::string::npos);
}

TEST_F(FaultReport, OverwritesNothing) {
  writeFileAtomically(request_.output + ".fault.txt", "mine");
  EXPECT_NE(std::string(fault().what()).find("p.dsplan.fault-2.txt"), std::string::npos);
  EXPECT_EQ(readWhole(request_.output + ".fault.txt"), "mine");
  EXPECT_TRUE(isThere(request_.output + ".fault-2.txt"));
}

/// Whether a diagnosis is a fault of the compiler.
bool isFault(const std::string &message) {
  mlir::MLIRContext context;
  const DiagnosticCollector diagnostics(context);
  mlir::emitError(mlir::UnknownLoc::get(&context)) << message;
  try {
    diagnostics.raise("planning");
  } catch (const CompilerFault &fault) {
    EXPECT_EQ(std::string(fault.what()), "the compiler's own program is wrong after planning: " + message);
    return true;
  } catch (const Error &error) {
    EXPECT_EQ(std::string(error.what()), message);
  }
  return false;
}

TEST(Fault, IsWhatOpsOfOursAreAccusedOf) {
  EXPECT_TRUE(isFault("'plan.send' op reads \"w::gradient\", which nothing has written"));
  EXPECT_TRUE(isFault("'dist.send' op sends on @c, on which another op sends"));
  EXPECT_FALSE(isFault("'train.gather' op has no gradient"));
  EXPECT_FALSE(isFault("cannot be cut into 9 stages"));
}

} // namespace
} // namespace ds::driver
