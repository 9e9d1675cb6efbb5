module Main exposing (main)

import Html exposing (Html, div)
import Shop.Cart as Cart


type Msg
    = Increment
    | Decrement


type alias Model =
    { count : Int }


update : Msg -> Model -> Model
update msg model =
    case msg of
        Increment ->
            Cart.add model

        Decrement ->
            remove model


remove : Model -> Model
remove model =
    { model | count = model.count - 1 }
