// Moves, memory and control, by ISA 9.7.9 and 9.7.12, and what a run refuses.
#include "core/Error.h"
#include "kernels/ptx/Buffers.h"
#include "kernels/ptx/Ptx.h"
#include "test/unit/ptx/Harness.h"

#include <array>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <span>
#include <vector>

namespace ds::ptx {

namespace {

const Case cases[] = {
    {"mov.b32 %r0, 0f3F800000;", {}, 0x3F800000},
    {"mov.f32 %r0, 0fBF800000;", {}, 0xBF800000},
    {"mov.b64 %d0, 0d3FF0000000000000;", {}, 0x3FF0000000000000},
    {"mov.f64 %d0, 0.5;", {}, 0x3FE0000000000000},
    {"mov.u32 %r0, 0x1F;", {}, 31},
    {"mov.u32 %r0, 017;", {}, 15},
    {"mov.u32 %r0, 0b101U;", {}, 5},
    {"mov.b16 %h0, -1;", {}, 0xFFFF},
    {"mov.pred %p0, -1;", {}, 1},
    {"mov.pred %p0, %p1;", {0}, 0},
    {"mov.b32 %r0, {%h1, %h2};", {0x1234, 0xABCD}, 0xABCD1234}, // the first lies lowest
    {"mov.b32 {%h0, %h4}, %r1;", {0xABCD1234}, 0x1234},
    {"mov.b32 {_, %h0}, %r1;", {0xABCD1234}, 0xABCD},
    {"mov.b64 %d0, {%r1, %r2};", {1, 2}, 0x200000001},
    {"mov.b64 {%r4, %r0}, %d1;", {0x200000001}, 2},
    {"mov.b64 %d0, {%h1, %h2, %h3, %h1};", {1, 2, 3}, 0x0001000300020001},
    {"mov.b64 {%h4, %h5, %h6, %h0}, %d1;", {0x0004000300020001}, 4},
    {"ld.param.b32 %r0, [t1+4];", {0x1234567800000000}, 0x12345678},
    {"ld.param.s8 %r0, [t1];", {0x80}, 0xFFFFFF80},
    {"ld.param.u8 %r0, [t1+1];", {0x8000}, 0x80},
    {"mov.u32 %r0, %tid.x;", {}, 0},
    {"mov.u32 %r0, %nctaid.x;", {}, 1},
    {"add.s32 %r0, %ntid.y, %ctaid.z;", {}, 1},
    // A block's names hide those outside of it.
    {"{ .reg .b32 %r1; mov.b32 %r1, 9; mov.b32 %r0, %r1; } add.s32 %r0, %r0, %r1;", {5}, 14},
    // Guards and branches.
    {"mov.b32 %r0, 1; @%p1 mov.b32 %r0, 2;", {1}, 2},
    {"mov.b32 %r0, 1; @!%p1 mov.b32 %r0, 2;", {1}, 1},
    {"mov.b32 %r0, 1; @%p1 bra $there; mov.b32 %r0, 2; $there: add.s32 %r0, %r0, 1;", {1}, 2},
    {"mov.b32 %r0, 0; loop: add.s32 %r0, %r0, %r1; setp.lt.u32 %p4, %r0, 100; @%p4 bra loop;", {15}, 105},
    {".pragma \"nounroll\"; mov.b32 %r0, 3; /* of\n no effect */ // nor this", {}, 3},
};

TEST(PtxMove, KnownValues) {
  for (const Case &c : cases)
    EXPECT_EQ(evaluated(c.instruction, c.inputs), c.expected) << c.instruction;
}

/// An entry `k` with two addresses and a number.
std::string kernel(std::string_view body) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 .ptr .global .align 16 in,\n"
         ".param .u64 .ptr .global .align 16 out, .param .u32 n)\n{\n.reg .pred %p<4>;\n.reg .b16 %h<8>;\n"
         ".reg .b32 %r<16>;\n.reg .b64 %d<16>;\nld.param.b64 %d1, [in];\nld.param.b64 %d2, [out];\n" +
         std::string(body) + "\nret;\n}\n";
}
constexpr uint64_t in = 0x10000, out = 0x20000;

/// Runs `k` and returns what is at `out`; "" or why it ended goes to `why`.
template <typename T>
std::vector<T> outOf(std::string_view body, std::vector<T> input, size_t outputs, Grid grid, uint32_t n = 0,
                     std::string *why = nullptr, const Limits &limits = {}) {
  std::vector<T> result(outputs);
  Buffers memory;
  memory.add(in, std::as_writable_bytes(std::span(input)), false);
  memory.add(out, std::as_writable_bytes(std::span(result)));
  const std::array<uint64_t, 3> parameters{in, out, n};
  try {
    (void)run(parse(kernel(body)), "k", grid, parameters, memory, limits);
  } catch (const Error &error) {
    if (why == nullptr)
      ADD_FAILURE() << error.what();
    else
      *why = error.what();
  }
  return result;
}

constexpr std::string_view copyByThreads = R"(
ld.param.b32 %r1, [n]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
mad.lo.s32 %r5, %r2, %r3, %r4; setp.ge.u32 %p1, %r5, %r1; @%p1 bra end;
mul.wide.u32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; ld.global.nc.L1::no_allocate.b32 %r6, [%d4];
mov.u32 %r7, %nctaid.x; add.s32 %r6, %r6, %r7;
add.s64 %d5, %d2, %d3; st.global.cs.b32 [%d5], %r6;
end:)";

TEST(PtxMemory, ThreadsOfAllBlocks) {
  std::vector<uint32_t> input(10), expected(10);
  std::iota(input.begin(), input.end(), 100);
  std::iota(expected.begin(), expected.end(), 103);
  EXPECT_EQ(outOf(copyByThreads, input, 10, {3, 4}, 10), expected);
  EXPECT_EQ(outOf(copyByThreads, input, 10, {3, 4, true}, 10), expected);
  expected[9] = 0;
  EXPECT_EQ(outOf(copyByThreads, input, 10, {3, 4}, 9), expected);
}

TEST(PtxMemory, TheOrderOfThreadsIsChosen) {
  // Each adds its number to what it shares with the others: shifted by the order in which they come.
  constexpr std::string_view body = "mov.u32 %r1, %tid.x; ld.b32 %r2, [%d2]; shl.b32 %r2, %r2, 4; or.b32 %r2, %r2, "
                                    "%r1; st.b32 [%d2], %r2;";
  EXPECT_EQ(outOf<uint32_t>(body, {0}, 1, {1, 4})[0], 0x0123u);
  EXPECT_EQ(outOf<uint32_t>(body, {0}, 1, {1, 4, true})[0], 0x3210u);
}

TEST(PtxMemory, WidthsSignsAndVectors) {
  const std::vector<uint8_t> input{0x80, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xFF};
  EXPECT_EQ(outOf("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d1]; st.global.v4.b32 [%d2], {%r4, %r3, %r2, %r1};", input,
                  16, {1, 1}),
            (std::vector<uint8_t>{12, 13, 14, 0xFF, 8, 9, 10, 11, 4, 5, 6, 7, 0x80, 1, 2, 3}));
  EXPECT_EQ(outOf("ld.global.v2.b64 {_, %d3}, [%d1]; st.b64 [%d2], %d3;", input, 8, {1, 1}),
            (std::vector<uint8_t>{8, 9, 10, 11, 12, 13, 14, 0xFF}));
  EXPECT_EQ(outOf("ld.s8 %d3, [%d1]; st.u64 [%d2], %d3;", input, 8, {1, 1}),
            (std::vector<uint8_t>{0x80, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}));
  EXPECT_EQ(outOf("ld.u8 %r3, [%d1+15]; st.b32 [%d2], %r3; st.b8 [%d2+3], 7;", input, 4, {1, 1}),
            (std::vector<uint8_t>{0xFF, 0, 0, 7}));
  EXPECT_EQ(outOf("add.s64 %d3, %d1, 4; ld.s16 %r3, [%d3+-4]; st.b32 [%d2], %r3;", input, 4, {1, 1}),
            (std::vector<uint8_t>{0x80, 1, 0, 0}));
  EXPECT_EQ(outOf("st.v2.b16 [%d2], {1, -1};", input, 4, {1, 1}), (std::vector<uint8_t>{1, 0, 0xFF, 0xFF}));
}

struct Refusal {
  const char *body;
  const char *sentence;
};

const Refusal refusals[] = {
    {"ld.global.b32 %r1, [%d1+16];",
     "entry 'k', block 0, thread 0, line 13 ('ld.global.b32 %r1, [%d1+16];') reads 4 bytes at 0x10010, which lie "
     "outside of every buffer"},
    {"ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d1+16];",
     "reads 16 bytes at 0x10010, which lie outside of every buffer"},
    {"st.global.b64 [%d2+16], 0;", "writes 8 bytes at 0x20010, which lie outside of every buffer"},
    {"st.global.b64 [%d1], 0;", "writes 8 bytes at 0x10000, in a buffer that it may only read"},
    {"ld.global.b32 %r1, [%d1+2];", "accesses 4 bytes at 0x10002, which is no multiple of 4"},
    {"ld.global.v2.b32 {%r1, %r2}, [%d1+4];", "accesses 8 bytes at 0x10004, which is no multiple of 8"},
    {"ld.b32 %r1, [64];", "reads 4 bytes at 0x40, which lie outside of every buffer"},
    {"add.s32 %r1, %r2, 1;", "reads %r2, which nothing has written"},
    {"st.b32 [%d2], %r5;", "reads %r5, which nothing has written"},
    {"ld.b32 %r1, [%d9];", "reads %d9, which nothing has written"},
    {"@%p1 mov.b32 %r1, 2;", "reads %p1, which nothing has written"},
    {"setp.eq.b64 %p1, %d1, 0; @%p1 mov.b32 %r1, 2; mov.b32 %r2, %r1;", "reads %r1, which nothing has written"},
    {"loop: bra.uni loop;",
     "entry 'k', block 0, thread 0, line 13 ('loop: bra.uni loop;') is reached after 1000 instructions of this thread, "
     "as many as it may run"},
    {"trap;", "ends the kernel"},
};

TEST(PtxRun, RefusesWithThePlace) {
  for (const Refusal &refusal : refusals) {
    std::string why;
    (void)outOf<uint32_t>(refusal.body, {1, 2, 3, 4}, 4, {1, 1}, 0, &why, {.instructionsOfThread = 1000});
    EXPECT_NE(why.find(refusal.sentence), std::string::npos) << refusal.body << ": " << why;
  }
}

TEST(PtxRun, NamesBlockAndThread) {
  std::string why;
  (void)outOf<uint32_t>(copyByThreads, std::vector<uint32_t>(10), 10, {3, 4}, 11, &why);
  EXPECT_TRUE(why.starts_with("entry 'k', block 2, thread 2, line 16 (")) << why;
}

TEST(PtxRun, EveryThreadStartsWithoutValues) {
  std::string why;
  // The second thread skips what the first has written.
  (void)outOf<uint32_t>("mov.u32 %r1, %tid.x; setp.eq.b32 %p1, %r1, 0; @%p1 mov.b32 %r2, 1; st.b32 [%d2], %r2;", {0}, 1,
                        {1, 2}, 0, &why);
  EXPECT_NE(why.find("thread 1, line 13"), std::string::npos) << why;
}

TEST(PtxRun, BoundsAllThreadsTogether) {
  std::string why;
  (void)outOf<uint32_t>(copyByThreads, std::vector<uint32_t>(64), 64, {1, 64}, 64, &why, {.instructions = 500});
  EXPECT_NE(why.find("is reached after 500 instructions of all threads, as many as they may run"), std::string::npos)
      << why;
}

TEST(PtxRun, RefusesLaunches) {
  const Module module = parse(".version 8.0\n.target sm_90\n.address_size 64\n.entry a(.param .u32 n)\n.maxntid 64, 2\n"
                              "{ ret; }\n.visible .entry b()\n.reqntid 32\n.minnctapersm 2\n{ ret; }\n");
  Buffers memory;
  const auto why = [&](const char *entry, Grid grid, std::vector<uint64_t> parameters) -> std::string {
    try {
      (void)run(module, entry, grid, parameters, memory);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(why("a", {1, 128}, {0}), "");
  EXPECT_EQ(why("a", {1, 129}, {0}), "entry 'a' runs with at most 128 threads a block, not 129");
  EXPECT_EQ(why("a", {1, 1}, {}), "entry 'a' takes 1 parameters, and there are 0");
  EXPECT_EQ(why("a", {0, 1}, {0}), "entry 'a': a grid of 0 blocks of 1 threads");
  EXPECT_EQ(why("b", {5, 32}, {}), "");
  EXPECT_EQ(why("b", {5, 16}, {}), "entry 'b' runs with 32 threads a block (.reqntid), not 16");
  EXPECT_EQ(why("c", {1, 1}, {}), "the PTX has no entry 'c'");
}

TEST(PtxBuffers, RefuseToOverlap) {
  std::array<std::byte, 64> bytes{};
  Buffers memory;
  memory.add(0x100, bytes);
  memory.add(0x140, bytes);
  EXPECT_THROW(memory.add(0x13F, bytes), Error);
  EXPECT_THROW(memory.add(UINT64_MAX - 8, bytes), Error);
}

} // namespace

} // namespace ds::ptx
