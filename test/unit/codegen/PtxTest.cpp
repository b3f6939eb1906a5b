// The text of compiled programs: what it must not hold, and that ptxas takes it without spilling registers.
#include "compiler/codegen/Ptx.h"
#include "Samples.h"
#include "compiler/codegen/ElementwiseCode.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace ds::codegen::test {
namespace {

std::string ptxOf(const Sample &made, std::string_view isa) {
  llvm::LLVMContext context;
  ElementwiseCode code = elementwiseCode(made.invocation, made.alignments, made.name, Target::Gpu, context);
  return code.module ? codegen::ptxOf(*code.module, isa) : "";
}

bool holds(const std::string &text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Ptx, HasNoMemoryOfItsOwnAndNoCalls) {
  for (const Sample &made : samples()) {
    const std::string text = ptxOf(made, "sm_90");
    SCOPED_TRACE(made.name);
    EXPECT_TRUE(holds(text, ".visible .entry " + made.name));
    for (const char *part : {".local", ".shared", "call", ".func", "approx", ".ftz", "ld.param.v", ".const"})
      EXPECT_FALSE(holds(text, part)) << part;
  }
}

/// ptxas makes one fused operation of a product and a sum that do not say how they round.
TEST(Ptx, ProductsAndSumsAreRoundedEach) {
  Program p{3};
  p.results = {p.add(Op::Add, DType::F32, p.add(Op::Mul, DType::F32, 0, 1), 2)};
  const auto three = std::vector<kernels::TensorType>(3, type(DType::F32, {64}));
  const std::string text = ptxOf(sample("chain", three, p, {DType::F32}, {64}), "sm_80");
  EXPECT_TRUE(holds(text, "mul.rn.f32"));
  EXPECT_TRUE(holds(text, "add.rn.f32"));
  for (const char *part : {"fma", "mul.f32", "add.f32"})
    EXPECT_FALSE(holds(text, part)) << part;
}

TEST(Ptx, SixteenBytesAtOnceWhereTheyMay) {
  const auto withAlignment = [](uint64_t alignment) {
    Sample made = gelu(DType::BF16, {4, 64});
    made.alignments.assign(2, alignment);
    return ptxOf(made, "sm_90");
  };
  EXPECT_TRUE(holds(withAlignment(512), "ld.global.v4.b32"));
  EXPECT_TRUE(holds(withAlignment(512), "st.global.v4.b32"));
  EXPECT_TRUE(holds(withAlignment(8), "ld.global.v2.b32"));
  EXPECT_TRUE(holds(withAlignment(2), "ld.global.b16"));
  EXPECT_FALSE(holds(withAlignment(2), "ld.global.v"));
}

TEST(Ptx, SaysForWhichMachines) {
  const Sample made = gelu(DType::BF16, {4, 64});
  for (const auto &[isa, target] : {std::pair("sm_80", ".version 7.0\n.target sm_80"),
                                    {"sm_86", ".target sm_80"},
                                    {"sm_90", ".version 7.8\n.target sm_90"},
                                    {"sm_90a", ".target sm_90\n"},
                                    {"sm_100", ".target sm_90"}})
    EXPECT_TRUE(holds(ptxOf(made, isa), target)) << isa;
}

TEST(Ptx, IsTheSameTwice) {
  for (const Sample &made : samples())
    EXPECT_EQ(ptxOf(made, "sm_80"), ptxOf(made, "sm_80")) << made.name;
}

TEST(Ptx, AssemblesWithoutSpills) {
  const char *ptxas = "/usr/local/cuda/bin/ptxas";
  if (access(ptxas, X_OK) != 0)
    GTEST_SKIP() << "there is no " << ptxas;
  const std::string file = testing::TempDir() + "sample" + std::to_string(getpid()) + ".ptx";
  for (const char *isa : {"sm_80", "sm_90"})
    for (const Sample &made : samples()) {
      std::ofstream(file) << ptxOf(made, isa);
      const std::string command = std::string(ptxas) + " -v -arch=" + isa + " -o /dev/null " + file + " 2>&1";
      FILE *pipe = popen(command.c_str(), "r");
      std::string output;
      std::array<char, 256> part;
      while (fgets(part.data(), part.size(), pipe))
        output += part.data();
      EXPECT_EQ(pclose(pipe), 0) << made.name << ": " << output;
      EXPECT_TRUE(holds(output, "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"))
          << made.name << " for " << isa << ": " << output;
    }
  unlink(file.c_str());
}

} // namespace
} // namespace ds::codegen::test
