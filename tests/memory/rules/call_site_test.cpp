// Names of functions and files: what is left of a name without its parameters, and whose a frame is, by every mark that
// tells.
#include <tenon/memory/history/call_site.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using ::testing::ElementsAre;

TEST(NamesOfFunctions, AreLeftWithoutParametersAndUnnamedNamespaces) {
  const std::pair<const char*, const char*> names[] = {
      {"", ""},
      {"f", "f"},
      {"f(int)", "f"},
      {"f() const", "f"},
      {"f(int", "f"},
      {"(x)", "(x)"},
      {"f(g(int), h(char))", "f"},
      {"(anonymous namespace)::f(int)", "f"},
      {"a::(anonymous namespace)::b(int) const", "a::b"},
      {"a::b((anonymous namespace)::C)", "a::b"},
      {"f(int)::g(char)", "f::g"},
      {"f(a(int))::g(char)::h()", "f::g::h"},
      {"f(int) const::g(char)", "f"},
      {"main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"},
      {"f(int)::{lambda(char)#2}::operator()(char)", "f::{lambda(char)#2}::operator()"},
      {"T<int (*)(char)>::f(int)", "T<int (*)(char)>::f"},
      {"std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator()"},
      {"f<g(int)>(char)", "f<g(int)>"},
      {"a<b<c> >::f(int)", "a<b<c> >::f"},
      {"operator", "operator"},
      {"a::operator", "a::operator"},
      {"operator new(unsigned long)", "operator new"},
      {"A::operator int() const", "A::operator int"},
      {"A::operator<(B)", "A::operator<"},
      {"A::operator<<(B)", "A::operator<<"},
      {"A::operator<=>(B const&)", "A::operator<=>"},
      {"A::operator>(B)", "A::operator>"},
      {"A::operator->() const", "A::operator->"},
      {"A::operator()<int>(int)", "A::operator()<int>"},
      {"bool operator< <int>(A<int>)", "bool operator< <int>"},
      {"A*operator<(int)", "A*operator<"},
      {"A&operator<(int)", "A&operator<"},
      {"my_operator<(int)>(char)", "my_operator<(int)>"},
      {"operators<(int)>(char)", "operators<(int)>"},
      {"operator_<(int)>(char)", "operator_<(int)>"},
      {"A<operator<(int)>", "A<operator<(int)>"},
      {"decltype ((f)(x)) a::g<int>(int)", "a::g<int>"},
      {"decltype(auto) a::g<int>(int)", "a::g<int>"},
      {"decltype ((h)(x)) (anonymous namespace)::g<int>(int)", "g<int>"},
      {"decltypes(int)", "decltypes"},
      {"std::vector<int> a::g<int>(int)", "std::vector<int> a::g<int>"}};
  for (const auto& [name, wanted] : names) EXPECT_EQ(without_parameters(name), wanted) << name;
}

bool is_own(const StackFrame& frame) {
  // Behind it one that is nobody's: where none is its own, another rule decides.
  return own_frames(std::vector<StackFrame>{{"own", "/project/own.cpp", 1}, frame}).size() == 2;
}

TEST(OwnFrames, AreNotThoseOfAFolderOrLibraryOfSomebodyElse) {
  for (const std::string part : {"/torch/", "/include/c++/", "/site-packages/", "/dist-packages/", "/aten/", "/c10/",
                                 "/python3", "/csu/libc-start", "/libc_start_call_main", "libstdc++.so", "/nptl/",
                                 "/sysdeps/", "/libsanitizer/", "/compiler-rt/", "libasan.so", "libtsan.so"}) {
    EXPECT_FALSE(is_own({"f", "/x" + part + "y", 1})) << part;
    EXPECT_FALSE(is_own({"f", "/x" + part + "y.py", 1})) << part;
    EXPECT_TRUE(is_own({"f", "/x" + part.substr(0, part.size() - 1) + "_/y", 1})) << part;
    EXPECT_TRUE(is_own({"f" + part, "/x/y", 1})) << "of the file, not of the name";
  }
  for (const std::string part : {"/Python/", "/Objects/", "/Modules/", "/Include/"}) {
    EXPECT_FALSE(is_own({"f", "/x" + part + "y.c", 1})) << part;
    EXPECT_TRUE(is_own({"f", "/x" + part + "y.py", 1})) << "a program in Python may have such a folder";
  }
  for (const char* file : {"??", ""}) EXPECT_FALSE(is_own({"f", file, 1}));
  EXPECT_TRUE(is_own({"f", "?", 1}));
  EXPECT_TRUE(is_own({"??", "/x/y", 1}));
}

TEST(OwnFrames, AreNotThoseWhoseNameBeginsLikeALibrarys) {
  for (const std::string begin :
       {"_object*", "torch::", "c10::", "at::", "THP", "_Py", "Py", "pymain_", "pyrun_", "std::", "_start", "__libc_",
        "execute_native_thread", "__interceptor_", "__tsan_", "pybind11::", "CLI::"}) {
    EXPECT_FALSE(is_own({begin + "f", "/project/a.cpp", 1})) << begin;
    EXPECT_FALSE(is_own({begin, "/project/a.cpp", 1})) << begin;
    EXPECT_TRUE(is_own({begin + "f", "/project/a.py", 1})) << "a name of Python's may begin with " << begin;
    EXPECT_TRUE(is_own({"x" + begin, "/project/a.cpp", 1})) << begin;
    EXPECT_TRUE(is_own({begin.substr(0, begin.size() - 1), "/project/a.cpp", 1})) << begin;
  }
}

TEST(OwnFrames, OfATemplateAreWhoseItsNameIsAndNotItsResult) {
  for (const char* name :
       {"void at::f<int>(int)", "std::vector<int, a> at::f<int>(int)", "decltype ((f(x)).g(y)) at::f<int>(int)",
        "unsigned long std::f<int>(int)", "decltype(auto) torch::(anonymous namespace)::f<int>()",
        "std::function<void (int)>::operator()(int) const", "mine::Result std::operator+ <char>(int)"})
    EXPECT_FALSE(is_own({name, "/project/a.cpp", 1})) << name;
  for (const char* name :
       {"std::vector<int, a> mine::f<int>(int)", "at::Tensor mine::f<int>(at::Tensor)",
        "decltype ((std::f(x)).g(y)) mine::f<int>(int)", "mine::A::operator std::string() const",
        "mine::A::operator unsigned std::size() const", "mine::{lambda(int std::x)#1}::operator()(int) const",
        "mine::f(int) std::g", "std::vector<int> (anonymous namespace)::f<int>(int)"})
    EXPECT_TRUE(is_own({name, "/project/a.cpp", 1})) << name;
}

TEST(OwnFrames, OfTenonAreNoneByTheirFileOrTheirName) {
  for (const char* file : {"/lib/libtenon.so", "libtenon.so.1", "tenon", "/opt/bin/tenon", "bin/x/bin/tenon",
                           "/src/framework/tenon/ops/a.h", "/usr/include/tenon/core.h"})
    EXPECT_FALSE(is_own({"f", file, 1})) << file;
  for (const char* file : {"/lib/libtenon.s", "/tenon.so", "/opt/tenon", "/opt/bin/tenons", "/framework/tenons/a.h",
                           "/libtenon.so.1/a.cpp", "my_tenon"})
    EXPECT_TRUE(is_own({"f", file, 1})) << file;
  for (const char* name :
       {"tenon::f", "void tenon::f<int>(int)", "std::vector tenon::f(int)", "unsigned int tenon::f",
        "std::vector<tenon::Tensor> tenon::f<int>(int)",
        "decltype ((((declval<tenon::nn::LinearImpl&>)()).forward)({parm#1}...)) "
        "tenon::nn::ModuleHolder<tenon::nn::LinearImpl>::operator()<tenon::Tensor>(tenon::Tensor&&)"})
    EXPECT_FALSE(is_own({name, "/project/a.cpp", 1})) << name;
  for (const char* name :
       {"mine::tenon::f", "f(int, tenon::Tensor)", "f(int) tenon::g", "F< tenon::G>::f", "tenon", "tenon:"})
    EXPECT_TRUE(is_own({name, "/project/a.cpp", 1})) << name;
}

TEST(Machinery, IsWhatEveryAllocationAndRunOfTenonHas) {
  const auto is_one = [](const std::string& name, const std::string& file = "/lib/libtenon.so") {
    return is_machinery({name, file, 1});
  };
  for (const std::string begin :
       {"tenon::allocate_", "tenon::AllocatorStack", "tenon::StorageImpl", "tenon::Storage::", "tenon::IntrusivePtr",
        "tenon::make_intrusive", "tenon::History", "tenon::StackTable", "tenon::list_", "tenon::alias_of",
        "tenon::cli::", "tenon::run_experiment", "tenon::train::Training", "tenon::nn::AnyModule",
        "tenon::autograd::GraphTask", "tenon::autograd::run_backward"}) {
    EXPECT_TRUE(is_one(begin)) << begin;
    EXPECT_TRUE(is_one(begin + "x(int)")) << begin;
    EXPECT_TRUE(is_one("void " + begin + "<int>(int)", "/project/a.cpp")) << begin;
    EXPECT_FALSE(is_one(begin.substr(0, begin.size() - 1))) << begin;
    EXPECT_FALSE(is_one("tenon::x" + begin)) << begin;
  }
  EXPECT_TRUE(is_one("f")) << "what a header inlines has a bare name";
  EXPECT_TRUE(is_one("std::vector<int>::push_back(int)"));
  EXPECT_TRUE(is_one("tenon::(anonymous namespace)::f(int)"));
  EXPECT_FALSE(is_one("tenon::f((anonymous namespace)::A)"));
  EXPECT_FALSE(is_one("tenon::f<(anonymous namespace)::A>()"));
  EXPECT_FALSE(is_one("tenon::linear(tenon::Tensor)"));
  EXPECT_FALSE(is_one("f", "/project/a.cpp")) << "nobody's";
}

TEST(OwnFrames, WhereNoneIsTheProgramsAreTenonsOperatorsOrTheOneThatTells) {
  const StackFrame own{"f", "/project/a.cpp", 1}, op{"tenon::linear(int)", "/lib/libtenon.so", 1},
      machinery{"tenon::AllocatorStack::allocate()", "/lib/libtenon.so", 1}, nobody{"memcpy", "??", 0},
      aten{"at::_ops::mm::call(x)", "/lib/libtorch.so", 0},
      grad{"torch::autograd::generated::MmBackward0::apply()", "/lib/libtorch.so", 0};
  const auto own_of = [](const std::vector<StackFrame>& frames) { return own_frames(frames); };
  EXPECT_THAT(own_of({}), ElementsAre());
  EXPECT_THAT(own_of({machinery, op, own, aten, own}), ElementsAre(2, 4));
  EXPECT_THAT(own_of({machinery, op, aten, op, grad}), ElementsAre(1, 3));
  EXPECT_THAT(own_of({machinery, aten, grad, nobody}), ElementsAre(2)) << "the outermost that tells";
  EXPECT_THAT(own_of({machinery, grad, aten, nobody}), ElementsAre(2));
  EXPECT_THAT(own_of({aten, nobody, machinery}), ElementsAre(0));
  EXPECT_THAT(own_of({machinery, nobody}), ElementsAre(0)) << "the innermost";
}

TEST(CallSites, NameThreeOfTheirOwnFramesOrAll) {
  std::vector<StackFrame> frames;
  for (int i = 1; i <= 5; ++i)
    frames.push_back({"f" + std::to_string(i) + "(int)", "/a/b" + std::to_string(i) + ".cpp",
                      static_cast<std::uint32_t>(i == 2 ? 0 : 10 * i)});
  frames[0].file = "??";
  const auto first = [&](std::size_t count) { return std::span(frames).first(count); };
  EXPECT_EQ(call_site(first(0)), "[no stack]");
  EXPECT_EQ(call_site(first(0), true), "[no stack]");
  EXPECT_EQ(call_site(first(2)), "f2 (b2.cpp)");
  EXPECT_EQ(call_site(first(4)), "f2 (b2.cpp) < f3 (b3.cpp:30) < f4 (b4.cpp:40)");
  EXPECT_EQ(call_site(first(5)), "f2 (b2.cpp) < f3 (b3.cpp:30) < f4 (b4.cpp:40)");
  EXPECT_EQ(call_site(first(5), true),
            "f1(int) (??:10) < f2(int) (b2.cpp) < f3(int) (b3.cpp:30) < f4(int) (b4.cpp:40) < f5(int) (b5.cpp:50)");
}

}  // namespace
}  // namespace tenon
