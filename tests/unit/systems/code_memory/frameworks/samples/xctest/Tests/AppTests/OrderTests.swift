import XCTVapor

final class OrderTests: XCTestCase {
    func testShow() throws {
        try app.test(.GET, "/orders/1") { response in }
    }
}
