// What is no PTX, or none that is emulated, is refused with line, text and rule.
#include "kernels/ptx/Ptx.h"
#include "test/unit/ptx/Harness.h"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <string>

namespace ds::ptx {

namespace {

struct Refused {
  const char *instructions;
  const char *rule;
};

const Refused cases[] = {
    // Whose bits depend on ptxas.
    {"mul.f32 %r0, %r1, %r2;",
     "mul.f32 has no rounding, so ptxas may fuse it and its bits depend on ptxas; write mul.rn.f32"},
    {"add.ftz.f32 %r0, %r1, %r2;",
     "add.ftz.f32 has no rounding, so ptxas may fuse it and its bits depend on ptxas; write add.rn.ftz.f32"},
    {"sub.f64 %d0, %d1, %d2;",
     "sub.f64 has no rounding, so ptxas may fuse it and its bits depend on ptxas; write sub.rn.f64"},
    {"add.bf16x2 %r0, %r1, %r2;",
     "add.bf16x2 has no rounding, so ptxas may fuse it and its bits depend on ptxas; write add.rn.bf16x2"},
    {"fma.f32 %r0, %r1, %r2, %r3;", "fma.f32 has no rounding; write fma.rn.f32"},
    {"mul.rz.f32 %r0, %r1, %r2;", "of roundings only .rn is emulated, not .rz"},
    // What kernels of this kind do not have.
    {"bar.sync 0;", "'bar' is not among the instructions that are emulated"},
    {"call.uni foo;", "'call' is not among the instructions that are emulated"},
    {"atom.global.add.u32 %r0, [%d1], 1;", "'atom' is not among the instructions that are emulated"},
    {"ld.shared.b32 %r0, [%d1];", "'.shared' is not emulated here"},
    {"st.local.b32 [%d1], %r1;", "'.local' is not emulated here"},
    {"cvta.to.shared.u64 %d0, %d1;", "of the state spaces only .global is emulated"},
    {"add.cc.u32 %r0, %r1, %r2;", "'.cc' is not emulated here"},
    {"add.rn.f8 %r0, %r1, %r2;", "'f8' is no type that is emulated"},
    {"add %r0, %r1, %r2;", "'' is no type that is emulated"},
    {"mov.u32 %r0, %laneid;", "%laneid is no register of this entry"},
    {".reg .b128 %q<2>;", "registers of type .b128 are not emulated"},
    // Types and operands that do not fit.
    {"add.s32 %r0, %d1, %r2;", "%d1 has 64 bits where 32 are expected"},
    {"add.s64 %r0, %d1, %d2;", "%r0 has 32 bits where 64 are expected"},
    {"add.s32 %r0, %r1;", "3 operands are expected, and there are 2"},
    {"add.s32 %r0, %r1, %r9;", "%r9 is no register of this entry"},
    {"add.s32 %r0, %r1, %r02;", "%r02 is no register of this entry"},
    {"add.s32 %tid.x, %r1, %r2;", "%tid.x is no register of this entry"},
    {"add.s32 %r0, %r1, 0f3F800000;", "a float stands where an integer is expected"},
    {"add.rn.f32 %r0, %r1, 1;", "an integer stands where a float is expected"},
    {"add.rn.f32 %r0, %r1, 0d3FF0000000000000000;", "a float64 is 0d and sixteen hexadecimal digits"},
    {"add.rn.f64 %d0, %d1, 0f3F800000;", "a float of another width stands where 64 bits are expected"},
    {"add.s32 %r0, %r1, 4294967296;", "a number of more than 32 bits"},
    {"add.s32 %r0, %r1, 99999999999999999999;", "'99999999999999999999' is no number of at most 64 bits"},
    {"add.s32 %r0, %r1, 0x;", "'0x' is no number of at most 64 bits"},
    {"mov.b32 %r0, 0f3F80;", "a float32 is 0f and eight hexadecimal digits"},
    {"add.s32 %r0, %r1, [%d1];", "a register or a number is expected"},
    {"add.s32 %r0, %r1, !%r2;", "'!' stands in front of what is no predicate"},
    {"add.s32 %r0, %r1, %p1;", "%p1 has 1 bits where 32 are expected"},
    {"and.s32 %r0, %r1, %r2;", "the instruction is of bits"},
    {"add.b32 %r0, %r1, %r2;", "the instruction is not emulated for this type"},
    {"mul.u32 %r0, %r1, %r2;", "a product of integers is .lo, .hi or .wide"},
    {"mul.wide.u64 %d0, %d1, %d2;", "'.wide' is of 16 and 32 bits"},
    {"add.sat.u32 %r0, %r1, %r2;", "'.sat' is of s32 only"},
    {"setp.lt.b32 %p0, %r1, %r2;", "lt is no comparison of this type"},
    {"setp.lo.s32 %p0, %r1, %r2;", "lo is no comparison of this type"},
    {"setp.equ.s32 %p0, %r1, %r2;", "equ is no comparison of this type"},
    {"setp.foo.s32 %p0, %r1, %r2;", "'foo' is no comparison"},
    {"setp.lt.s32 %p0|%p4, %r1, %r2;", "',' is expected"},
    {"cvt.s32.f32 %r0, %r1;", "from a float to an integer one of .rni, .rzi, .rmi and .rpi is expected"},
    {"cvt.f32.s32 %r0, %r1;", "to this float one of .rn, .rz, .rm and .rp is expected"},
    {"cvt.rn.f64.f32 %d0, %r1;", "nothing is rounded here, and .rn stands there"},
    {"cvt.rn.e4m3x2.f32 %h0, %r1, %r2;", "'e4m3x2' is no type that is emulated"},
    {"mov.b32 {%h0, %h1, %h2}, %r1;", "a vector of this size does not fill the type"},
    {"ld.global.v2.b32 %r0, [%d1];", "2 values are expected"},
    {"ld.global.b32 {%r0, %r1}, [%d1];", "1 values are expected"},
    {"ld.global.v4.b64 {%d0, %d1, %d2, %d3}, [%d1];", "an access of more than 16 bytes is not emulated"},
    {"ld.global.b32 %r0, %d1;", "an address in brackets is expected"},
    {"ld.global.b32 %r0, [%r1];", "%r1 has 32 bits where 64 are expected"},
    {"ld.param.b32 %r0, [other];", "a parameter of this entry is expected"},
    {"ld.param.b32 %r0, [t1+8];", "t1 has 8 bytes"},
    {"ld.param.b32 %r0, [t1+2];", "t1 has 8 bytes"},
    {"ld.param.b32 %r0, [t1+-4];", "t1 has 8 bytes"},
    {"lop3.b32 %r0, %r1, %r2, %r3, 256;", "the table is a number of 0 to 255"},
    {"bra nowhere;", "there is no label nowhere"},
    {"here: here: mov.b32 %r0, 0;", "two labels have the name here"},
    {"@%p9 ret;", "%p9 is no register of this entry"},
    // Text that is none.
    {"mov.b32 %r0, 0", "',' is expected"},
    {"mov.b32 %r0 0;", "',' is expected"},
    {"42;", "an instruction is expected"},
    {"mov.b32 %r0, {%h1, %h2;", "'}' is expected"},
    {"ld.b32 %r0, [%d1;", "']' is expected"},
    {"mov.b32 %r0, -;", "a number is expected"},
    {".reg .b32 %x<70000>;", "a number of registers is expected, at most 65536"},
    {".reg .b32 %x<60000>; .reg .b32 %y<60000>;", "an entry has at most 65536 registers"},
    {".reg .b32 %r<9>;", "%r is declared twice"},
    {"{{{{{{{{{{{{{{{{", "blocks are nested more than 15 deep"},
};

TEST(PtxRefusal, OfInstructions) {
  for (const Refused &c : cases)
    EXPECT_EQ(refusal(c.instructions), c.rule) << c.instructions;
}

TEST(PtxRefusal, NamesLineAndText) {
  EXPECT_EQ(refusalOf(textOf("mul.f32 \t%r0, %r1, %r2; // so it goes")),
            "PTX line 12, 'mul.f32  %r0, %r1, %r2;': mul.f32 has no rounding, so ptxas may fuse it and its bits depend "
            "on ptxas; write mul.rn.f32");
}

const std::string head = ".version 8.0\n.target sm_90\n.address_size 64\n";

TEST(PtxRefusal, OfModules) {
  EXPECT_EQ(refusalOf(""), "PTX line 1, '': '.version' is expected");
  EXPECT_EQ(refusalOf(".version 8.0\n.target foo\n"), "PTX line 3, '': a target is sm_ and a number");
  EXPECT_EQ(refusalOf(".version 8.0\n.target sm_90\n.address_size 32\n"), "PTX line 4, '': addresses have 64 bits");
  EXPECT_EQ(refusalOf(head + ".visible .func f() { ret; }"),
            "PTX line 4, '.visible .func f() { ret; }': only entries are emulated: no functions, no variables");
  EXPECT_EQ(refusalOf(head + ".global .b8 x[4];"),
            "PTX line 4, '.global .b8 x[4];': only entries are emulated: no functions, no variables");
  EXPECT_EQ(refusalOf(head + ".entry f(.param .align 8 .b8 p[24]) { ret; }"),
            "PTX line 4, '.entry f(.param .align 8 .b8 p[24]) { ret; }': parameters of type .align are not emulated");
  EXPECT_EQ(refusalOf(head + ".entry f(.param .u64 .ptr .shared p) { ret; }"),
            "PTX line 4, '.entry f(.param .u64 .ptr .shared p) { ret; }': of the state spaces only .global is "
            "emulated");
  EXPECT_EQ(refusalOf(head + ".entry f() .maxntid 2048 { ret; }"),
            "PTX line 4, '.entry f() .maxntid 2048 { ret; }': a number of threads is expected, at most 1024");
  EXPECT_EQ(refusalOf(head + ".entry f() { ret; }\n.entry f() { ret; }"),
            "PTX line 5, '.entry f() { ret; }': two entries have the name f");
  EXPECT_EQ(refusalOf(head + ".entry f() { mov.b32 %r1, 2;"),
            "PTX line 4, '.entry f() { mov.b32 %r1, 2;': %r1 is no register of this entry");
  EXPECT_EQ(refusalOf(head + ".entry f() {\n"), "PTX line 5, '': the text ends within entry 'f'");
  EXPECT_EQ(refusalOf(head + ".entry f() { }"), "PTX line 4, '.entry f() { }': entry 'f' has no ret at its end");
  EXPECT_EQ(refusalOf(head + ".entry f() { .reg .pred %p; mov.pred %p, 1; @%p ret; }"),
            "PTX line 4, '.entry f() { .reg .pred %p; mov.pred %p, 1; @%p ret; }': entry 'f' has no ret at its end");
  EXPECT_EQ(refusalOf(std::string(mostTextBytes + 1, ' ')), "PTX of 1048577 bytes: at most 1048576 are read");
}

TEST(PtxRefusal, KindsOfRegisters) {
  const auto refused = [](const std::string &body) {
    const std::string sentence = refusalOf(head + ".entry f() {\n" + body + "\nret; }");
    return sentence.substr(std::min(sentence.size(), sentence.find("': ") + 3));
  };
  const std::string floats = ".reg .f32 %f<4>; .reg .s32 %i<4>; .reg .b32 %b<4>;\n";
  EXPECT_EQ(refused(floats + "add.s32 %i1, %i2, %b3;"), "");
  EXPECT_EQ(refused(floats + "add.u32 %i1, %i2, %b3;"), "");
  EXPECT_EQ(refused(floats + "add.rn.f32 %f1, %f2, %b3;"), "");
  EXPECT_EQ(refused(floats + "add.s32 %i1, %i2, %f3;"), "%f3 is of another kind than the instruction");
  EXPECT_EQ(refused(floats + "add.rn.f32 %f1, %i2, %f3;"), "%i2 is of another kind than the instruction");
}

TEST(PtxRefusal, ShortTextsDoNotFillTheMemory) {
  std::string text = head;
  for (int entry = 0; entry < 100; ++entry)
    text += ".entry e" + std::to_string(entry) + "() { .reg .b32 %r<65536>; ret; }";
  EXPECT_NE(refusalOf(text).find("all entries together have more than 4194304 registers and constants"),
            std::string::npos);
}

TEST(PtxRefusal, ManyEntriesOfOneLine) {
  std::string text = head;
  for (int entry = 0; entry < 20000; ++entry)
    text += ".entry e" + std::to_string(entry) + "() { ret; }";
  EXPECT_EQ(refusalOf(text), "");
  EXPECT_EQ(parse(text).entries.size(), 20000u);
}

/// Reading ends, with a module or a sentence, whatever is cut out of a text or put into it.
TEST(PtxRefusal, NoTextEndsTheProcess) {
  std::ifstream file(DS_SOURCE_DIR "/test/unit/ptx/samples/numbers_sm90.ptx");
  const std::string good((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(good.empty());
  std::mt19937 random(3);
  for (int draw = 0; draw < 2000; ++draw) {
    std::string text = good;
    for (int change = 0; change < 1 + draw % 4; ++change) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0)
        text.erase(at, random() % 20);
      else
        text.insert(at, good.substr(random() % good.size(), random() % 20));
    }
    (void)refusalOf(text);
  }
}

} // namespace

} // namespace ds::ptx
