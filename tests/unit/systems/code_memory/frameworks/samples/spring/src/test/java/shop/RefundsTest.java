package shop;

@Service
class FakeRefunds {}
