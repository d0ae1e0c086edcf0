// The target that the precompiled headers of the tests belong to; see cmake/TenonTest.cmake.
int main() {}
