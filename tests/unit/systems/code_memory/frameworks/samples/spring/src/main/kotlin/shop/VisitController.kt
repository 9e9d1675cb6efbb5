package shop

import org.springframework.web.bind.annotation.*

@RestController
@RequestMapping("/visits")
class VisitController(private val visits: VisitRepository) {

    @GetMapping("/{visitId}", produces = ["application/json"])
    fun show(@PathVariable visitId: Int): Visit = visits.find(visitId)

    @PostMapping
    fun create(@RequestBody visit: Visit) = visits.save(visit)

    @RequestMapping(value = ["/today", "/now"], method = [RequestMethod.GET])
    fun today(): List<Visit> {
        return visits.today()
    }
}
